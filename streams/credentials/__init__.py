"""Secrets from files, and access tokens for brokers that use OAuth."""
