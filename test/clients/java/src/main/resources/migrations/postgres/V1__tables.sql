CREATE TABLE items (name text PRIMARY KEY, amount integer NOT NULL, seen integer NOT NULL DEFAULT 0);
CREATE SEQUENCE numbers;
CREATE TYPE colour AS ENUM ('red', 'green');
CREATE FUNCTION twice(n integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT 2 * n $$;
CREATE FUNCTION mark() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.seen := NEW.amount + 1; RETURN NEW; END $$;
CREATE TRIGGER marks BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION mark();
CREATE PROCEDURE fill() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO items VALUES ('a', 20); END $$;
