"""Small networks that are trained on a task, and what their paths and steps show."""
