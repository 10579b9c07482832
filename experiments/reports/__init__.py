"""What experiments found, as rows, tables and figures."""
