package systemtables

import (
	"testing"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/conf"
)

func TestTimeZoneSQL(t *testing.T) {
	if !conf.Exists(zoneDir + "/Asia/Tokyo") {
		t.Skip("no time zones on this host")
	}
	location, err := load(zoneDir, "Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Golden(t, "tokyo.sql", zoneOf(location).sql())
}
