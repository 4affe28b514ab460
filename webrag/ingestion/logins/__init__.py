"""Sessions of the user's own, for pages that want a login."""
