"""The version of azure-ai-ml whose interface this is; scripts print and compare it."""
VERSION = "1.35.2"
