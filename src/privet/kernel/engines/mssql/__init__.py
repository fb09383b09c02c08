"""Tables of SQL Server."""
