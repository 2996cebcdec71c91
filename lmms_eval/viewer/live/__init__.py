"""The live view: follows the journals of runs, and shows them by a server on loopback or on a terminal."""
