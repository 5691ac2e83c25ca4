"""From files to parameters: what a user's files hold, and the settings that this asks for."""
