"""The edge on its server: connections, and the short way that small requests take."""
