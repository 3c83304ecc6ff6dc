"""Models of running workers: announcements, reload, shadow, publishing."""
