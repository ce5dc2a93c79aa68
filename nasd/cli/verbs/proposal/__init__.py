"""What runs ask to have merged."""
