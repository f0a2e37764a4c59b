package door

import (
	"context"
	"database/sql"
)

// Named reads a result as text by column; a NULL is the empty string.
func Named(ctx context.Context, db *sql.DB, statement string) ([]map[string]string, error) {
	all, err := NamedAll(ctx, db, statement)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// asker is a pool of sessions, or one of them.
type asker interface {
	QueryContext(ctx context.Context, statement string, args ...any) (*sql.Rows, error)
}

// NamedAll is named of several statements in one text, each with its answer.
func NamedAll(ctx context.Context, db asker, statements string) ([][]map[string]string, error) {
	rows, err := db.QueryContext(ctx, statements)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all [][]map[string]string
	for more := true; more; more = rows.NextResultSet() {
		one, err := namedRows(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

func namedRows(rows *sql.Rows) (all []map[string]string, err error) {
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values, targets := make([]sql.NullString, len(names)), make([]any, len(names))
	for n := range names {
		targets[n] = &values[n]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		row := map[string]string{}
		for n, name := range names {
			row[name] = values[n].String
		}
		all = append(all, row)
	}
	return all, rows.Err()
}
