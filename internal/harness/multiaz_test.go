package harness

import (
	"reflect"
	"testing"
)

func TestOwners(t *testing.T) {
	if got, want := Owners([]string{"db-B~3", "db-A", "db-B", "db-A~2"}), []string{"db-A", "db-B"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
