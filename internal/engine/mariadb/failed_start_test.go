package mariadb

import (
	"os"
	"path/filepath"
	"testing"

	"kurabe/internal/engine"
	"kurabe/internal/engine/mariadb/binlog"
)

func TestAfterFailedStart(t *testing.T) {
	const said = "Found 1 prepared transactions! It means that server was not shut down properly last time"
	closed := binlog.Magic + string(make([]byte, 40))
	for name, c := range map[string]struct {
		newest, message string
		log, marked     bool
	}{
		"as it should":              {closed, said, true, true},
		"another message":           {closed, "Can't open and lock privilege tables", true, false},
		"a server without its log":  {closed, said, false, false},
		"a log without any content": {"", said, true, false},
		"a log cut short":           {closed[:20], said, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			i := engine.Instance{Home: engine.Home{Dir: t.TempDir()}}
			i.Log = c.log
			if err := os.Mkdir(i.Home.DataDir(), 0o700); err != nil {
				t.Fatal(err)
			}
			files := map[string]string{binlog.FileName(9): closed, binlog.FileName(10): c.newest}
			for name, content := range files {
				if err := os.WriteFile(filepath.Join(i.Home.DataDir(), name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := (&Driver{}).AfterFailedStart(i, c.message); err != nil {
				t.Fatal(err)
			}
			if c.marked {
				marked := []byte(c.newest)
				marked[binlog.FileFlagsAt] |= binlog.InUseFlag
				files[binlog.FileName(10)] = string(marked)
			}
			for name, want := range files {
				got, err := os.ReadFile(filepath.Join(i.Home.DataDir(), name))
				if err != nil || string(got) != want {
					t.Errorf("%s is %q, not %q, %v", name, got, want, err)
				}
			}
		})
	}
}
