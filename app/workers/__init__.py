"""Workers on one store: each sends the records of streams that another one holds to that one."""
