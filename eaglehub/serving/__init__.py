"""The command that serves a drafter: vLLM's or SGLang's, made to fit the drafter and its target."""

from eaglehub.serving.command import SERVERS, ServeCommand, Service, serve_command

__all__ = ["SERVERS", "ServeCommand", "Service", "serve_command"]
