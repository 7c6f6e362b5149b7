"""Options and help of every command. Nothing here may import pydantic or boto3 at load time."""
