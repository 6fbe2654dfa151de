"""MySQL and MariaDB by their binlog: one capture for both."""
