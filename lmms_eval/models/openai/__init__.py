"""The back end for servers with the OpenAI chat-completions protocol (``docs/models/openai.md``)."""
