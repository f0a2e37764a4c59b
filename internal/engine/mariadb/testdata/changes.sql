SET GLOBAL max_connections = 85;
SET GLOBAL long_query_time = 2.5;
SET GLOBAL sql_mode = 'ANSI';
SET GLOBAL innodb_buffer_pool_size = 64 * 1 * 1024 * 1024;
SET GLOBAL time_zone = 'Asia/Tokyo';
SET GLOBAL wait_timeout = DEFAULT;
SET GLOBAL general_log_file = '/run/kurabe/a/log/mysql-general.log';
