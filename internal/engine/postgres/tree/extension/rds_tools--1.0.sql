-- The functions that AWS's driver wrappers ask on RDS. They say what the service has written
-- into the server's settings. Nothing here is looked up on the caller's path: the bodies have
-- one of their own, and every name of the script is qualified. The wrappers use the first two in
-- FROM and in WHERE, so they return one value and no set.
\echo Use "CREATE EXTENSION rds_tools" to load this file. \quit

CREATE FUNCTION @extschema@.dbi_resource_id() RETURNS pg_catalog.text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT nullif(current_setting('kurabe.resource_id', true), '') $$;

CREATE FUNCTION @extschema@.multi_az_db_cluster_source_dbi_resource_id() RETURNS pg_catalog.text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT nullif(current_setting(CASE WHEN pg_is_in_recovery() THEN 'kurabe.source_resource_id' ELSE 'kurabe.resource_id' END, true), '') $$;

CREATE FUNCTION @extschema@.show_topology(client pg_catalog.text DEFAULT '', OUT id pg_catalog.text, OUT endpoint pg_catalog.text, OUT port pg_catalog.int4) RETURNS SETOF pg_catalog.record
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
	SELECT split_part(server, '=', 1), split_part(server, '=', 2), current_setting('port')::int4
	FROM unnest(string_to_array(current_setting('kurabe.topology', true), ' ')) WITH ORDINALITY AS t (server, n)
	WHERE server <> '' ORDER BY n
$$;

REVOKE ALL ON SCHEMA @extschema@ FROM PUBLIC;
GRANT USAGE ON SCHEMA @extschema@ TO PUBLIC;
