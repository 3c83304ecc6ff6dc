"""The releases of running workers: announcements, reload, shadow."""
