"""From files to parameters: what a user's files contain, and the settings that they call for."""
