package systemtables

import (
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kurabe/internal/engine/mariadb/sqltext"
)

// zoneDir is the host's time zone database. Where it is missing an instance has
// no named time zones, and refuses to start with one.
const zoneDir = "/usr/share/zoneinfo"

// zone is what the server's tables hold of a time zone.
type zone struct {
	types       []zoneType
	transitions []transition
}

type zoneType struct {
	offset int
	isDST  bool
	name   string
}

type transition struct {
	at       int64
	zoneType int
}

// timeZoneSQL fills the time zone tables, as mariadb-tzinfo-to-sql does, which
// is not in the packages that a server needs. Names of one zone share its rows.
func timeZoneSQL(root string) string {
	names := map[string][]string{} // by the statements that make the zone
	for _, name := range zoneNames(root) {
		location, err := load(root, name)
		if err != nil {
			continue // not a zone: the folder holds tables and leap seconds too
		}
		body := zoneOf(location).sql()
		names[body] = append(names[body], name)
	}
	var b strings.Builder
	for _, body := range slices.Sorted(maps.Keys(names)) {
		b.WriteString("INSERT INTO mysql.time_zone (Use_leap_seconds) VALUES ('N');\nSET @zone = LAST_INSERT_ID();\n")
		for _, name := range names[body] {
			fmt.Fprintf(&b, "INSERT INTO mysql.time_zone_name VALUES (%s, @zone);\n", sqltext.Literal(name))
		}
		b.WriteString(body)
	}
	return b.String()
}

func load(root, name string) (*time.Location, error) {
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	return time.LoadLocationFromTZData(name, data)
}

// zoneNames leaves out what repeats the others with leap seconds or under a
// prefix.
func zoneNames(root string) []string {
	var names []string
	_ = fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // what cannot be read is left out
		case path == "posix" || path == "right":
			return fs.SkipDir
		case !entry.IsDir() && path != "localtime" && path != "posixrules":
			names = append(names, path)
		}
		return nil
	})
	return names
}

// zoneOf lists the changes of a zone over all times that a TIMESTAMP can hold.
func zoneOf(location *time.Location) zone {
	var z zone
	at := time.Unix(math.MinInt32, 0).In(location)
	z.typeOf(at)
	for {
		_, end := at.ZoneBounds()
		if end.IsZero() || end.Unix() > math.MaxInt32 {
			return z
		}
		at = end
		z.transitions = append(z.transitions, transition{at.Unix(), z.typeOf(at)})
	}
}

// typeOf is the number of the type in force. The server takes the first that is
// not summer time for all times before the first change.
func (z *zone) typeOf(at time.Time) int {
	name, offset := at.Zone()
	t := zoneType{offset, at.IsDST(), name}
	if n := slices.Index(z.types, t); n >= 0 {
		return n
	}
	z.types = append(z.types, t)
	return len(z.types) - 1
}

// sql has one statement a line, as bootstrap mode wants it. A name is at most
// eight characters long in the table.
func (z zone) sql() string {
	const nameMax = 8
	var types, transitions []string
	for n, t := range z.types {
		isDST := 0
		if t.isDST {
			isDST = 1
		}
		types = append(types, fmt.Sprintf("(@zone,%d,%d,%d,%s)", n, t.offset, isDST, sqltext.Literal(t.name[:min(nameMax, len(t.name))])))
	}
	for _, t := range z.transitions {
		transitions = append(transitions, fmt.Sprintf("(@zone,%d,%d)", t.at, t.zoneType))
	}
	text := "INSERT INTO mysql.time_zone_transition_type VALUES " + strings.Join(types, ",") + ";\n"
	if len(transitions) > 0 {
		text += "INSERT INTO mysql.time_zone_transition VALUES " + strings.Join(transitions, ",") + ";\n"
	}
	return text
}
