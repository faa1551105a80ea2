"""Filters of subscriptions: tags, and SQL92 over properties. Pure; may import `nodes.protocol`."""
