package plan_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain has the models begin with the same seed each time, so that a change is judged by
// itself. KURABE_WHOLE draws others, as -rapid.seed does; a failure prints its seed.
func TestMain(m *testing.M) {
	flag.Parse()
	if seed := flag.Lookup("rapid.seed"); seed.Value.String() == seed.DefValue && os.Getenv("KURABE_WHOLE") == "" {
		if err := seed.Value.Set("1"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
