"""Serving a harness: on standard streams, a unix socket or TCP."""

from .serve import serve, serve_async

__all__ = ["serve", "serve_async"]
