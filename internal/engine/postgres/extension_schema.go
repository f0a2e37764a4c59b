package postgres

// A trusted script runs as superuser with the caller's schema on its path, and
// whatever lies there can be executed by it: a function that fits better than
// the script's own, an operator, a type whose input is the caller's code. To
// look whether something lies there is not enough; another session of the
// caller's can put it there while the script runs.
//
// So a script of ours runs in rooms. A room is a schema that was made in the
// script's own transaction, which no other session can see, and that has the
// name of a schema on the path, which steps aside meanwhile. In it is only what
// the bootstrap superuser owns. At the end all of it is moved into the schema
// whose name the room had. Others see nothing of that, as it is one transaction.
//
// What the room does not hold off is a statement that a script makes at run
// time out of what the caller controls; for that, scripts are read.

// namespaced lists the catalogues of things that are in schemas: the column of
// the schema and, where there is one, of the owner. Constraints have none; they
// go where their table or domain goes.
const namespaced = `SELECT a.attrelid::regclass::text AS catalog, a.attname AS space,
			(SELECT o.attname FROM pg_attribute o WHERE o.attrelid = a.attrelid AND o.attname ~ 'owner$' AND o.atttypid = 'oid'::regtype) AS owner
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
		WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind = 'r' AND a.attname ~ 'namespace$' AND a.atttypid = 'oid'::regtype
			AND c.relname NOT IN ('pg_constraint', 'pg_extension', 'pg_default_acl')`

// openRooms precedes a script. Everything before the path is set is qualified:
// at that moment the path is still the caller's. Two at a time would rename the
// same schema, so the second waits. A temporary table would be found for a name
// that is nowhere else.
const openRooms = `DO LANGUAGE plpgsql $kurabe$
DECLARE
	way CONSTANT pg_catalog.text := pg_catalog.current_setting('search_path');
	names CONSTANT pg_catalog.name[] := pg_catalog.current_schemas(false);
	rooms pg_catalog.text := '';
	old record; cat record; room oid; moved text;
BEGIN
	PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
	IF EXISTS (SELECT FROM pg_type WHERE typnamespace = pg_my_temp_schema()) THEN
		RAISE EXCEPTION 'this extension cannot be created in a session that has temporary tables or types'
			USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Use a new session, or DISCARD TEMP first.';
	END IF;
	LOCK TABLE pg_extension IN SHARE ROW EXCLUSIVE MODE;
	FOR old IN SELECT n.oid, n.nspname FROM pg_namespace n WHERE n.nspname = ANY (names) AND n.nspname !~ '^pg_(catalog$|temp)' ORDER BY n.oid LOOP
		IF old.nspname ~ '^pg_' OR old.nspname = 'information_schema' THEN
			RAISE EXCEPTION 'no extension can be in schema %', old.nspname USING ERRCODE = 'invalid_schema_name';
		END IF;
		FOR moved IN SELECT oid::regclass::text FROM pg_class WHERE relnamespace = old.oid AND relowner = 10 AND relkind IN ('r', 'p') LOOP
			EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', moved);
		END LOOP;
		EXECUTE format('ALTER SCHEMA %I RENAME TO kurabe_aside_%s', old.nspname, old.oid);
		EXECUTE format('CREATE SCHEMA %I', old.nspname);
		SELECT oid INTO STRICT room FROM pg_namespace WHERE nspname = old.nspname;
		FOR cat IN ` + namespaced + ` LOOP
			EXECUTE format('UPDATE %s SET %I = $1 WHERE %2$I = $2', cat.catalog, cat.space) || CASE WHEN cat.owner IS NULL THEN '' ELSE format(' AND %I = 10', cat.owner) END
				USING room, old.oid;
		END LOOP;
		UPDATE pg_constraint SET connamespace = room WHERE connamespace = old.oid
			AND (conrelid IN (SELECT oid FROM pg_class WHERE relnamespace = room) OR contypid IN (SELECT oid FROM pg_type WHERE typnamespace = room));
		rooms := rooms || format('%s=%s ', room, old.oid);
	END LOOP;
	PERFORM set_config('kurabe.rooms', rooms, true);
	PERFORM set_config('search_path', way, true);
END $kurabe$;
`

// closeRooms follows a script. A schema that still is needed cannot be dropped,
// so nothing is left behind. The path afterwards is pg_catalog alone.
const closeRooms = `
SET LOCAL search_path TO pg_catalog, pg_temp;
DO LANGUAGE plpgsql $kurabe$
DECLARE
	pair text; cat record; room oid; old oid; called name; what text;
BEGIN
	FOREACH pair IN ARRAY string_to_array(trim(current_setting('kurabe.rooms')), ' ') LOOP
		room := split_part(pair, '=', 1)::oid;
		old := split_part(pair, '=', 2)::oid;
		SELECT nspname INTO STRICT called FROM pg_namespace WHERE oid = room;
		BEGIN
			FOR cat IN ` + namespaced + ` LOOP
				EXECUTE format('UPDATE %s SET %I = $1 WHERE %2$I = $2', cat.catalog, cat.space) USING old, room;
			END LOOP;
		EXCEPTION WHEN unique_violation THEN
			GET STACKED DIAGNOSTICS what = PG_EXCEPTION_DETAIL;
			RAISE EXCEPTION 'schema "%" already has an object of a name that the extension needs', called
				USING ERRCODE = 'duplicate_object', DETAIL = what, HINT = 'Drop or rename that object, or create the extension in a schema of its own.';
		END;
		UPDATE pg_constraint SET connamespace = old WHERE connamespace = room;
		UPDATE pg_depend SET refobjid = old WHERE refclassid = 'pg_namespace'::regclass AND refobjid = room;
		EXECUTE format('DROP SCHEMA %I RESTRICT', called);
		EXECUTE format('ALTER SCHEMA kurabe_aside_%s RENAME TO %I', old, called);
	END LOOP;
END $kurabe$;
`

// inRooms is a script with rooms around it.
func inRooms(script string) string { return openRooms + script + closeRooms }
