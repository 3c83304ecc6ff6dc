"""The embedded broker; consumers, groups and membership on any broker; reading of topic ranges."""
