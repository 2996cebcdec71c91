"""Back end for servers that speak the OpenAI chat-completions protocol (``docs/models/openai.md``)."""
