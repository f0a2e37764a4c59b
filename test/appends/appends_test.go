package appends_test

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"kurabe/test/appends"
)

// TestLossesAreFound: what must never be seen is found when it is.
func TestLossesAreFound(t *testing.T) {
	add := func(value int, call, end int64) porcupine.Operation {
		return porcupine.Operation{Input: appends.Op{Key: 1, Value: value}, Call: call, Return: end}
	}
	read := func(list string, call, end int64) porcupine.Operation {
		return porcupine.Operation{Input: appends.Op{Key: 1}, Output: list, Call: call, Return: end}
	}
	const never = appends.Never
	for name, c := range map[string]struct {
		ops  []porcupine.Operation
		want porcupine.CheckResult
	}{
		"all is well":                           {[]porcupine.Operation{add(1, 0, 1), read(",1", 2, 3), add(2, 4, 5), read(",1,2", 6, 7)}, porcupine.Ok},
		"at the same time, in either order":     {[]porcupine.Operation{add(1, 0, 5), add(2, 0, 5), read(",2,1", 6, 7)}, porcupine.Ok},
		"an unknown one happened":               {[]porcupine.Operation{add(1, 0, never), read("", 2, 3), read(",1", 4, 5)}, porcupine.Ok},
		"an unknown one did not happen":         {[]porcupine.Operation{add(1, 0, never), add(2, 1, 2), read(",2", 4, 5)}, porcupine.Ok},
		"an acknowledged one is missing":        {[]porcupine.Operation{add(1, 0, 1), add(2, 2, 3), read(",2", 4, 5)}, porcupine.Illegal},
		"one that was read is gone":             {[]porcupine.Operation{add(1, 0, never), read(",1", 2, 3), read("", 4, 5)}, porcupine.Illegal},
		"a server that was deposed is read":     {[]porcupine.Operation{add(1, 0, 1), add(2, 2, 3), read(",1", 4, 5)}, porcupine.Illegal},
		"one is there twice":                    {[]porcupine.Operation{add(1, 0, 1), read(",1,1", 2, 3)}, porcupine.Illegal},
		"one is there before it was asked for":  {[]porcupine.Operation{read(",1", 0, 1), add(1, 2, 3)}, porcupine.Illegal},
		"two came in the order they did not go": {[]porcupine.Operation{add(1, 0, 1), add(2, 2, 3), read(",2,1", 4, 5)}, porcupine.Illegal},
	} {
		if got := porcupine.CheckOperationsTimeout(appends.Model, c.ops, time.Minute); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if wrong := appends.Explain(c.ops); (len(wrong) > 0) != (c.want == porcupine.Illegal) {
			t.Errorf("%s: explained by %q", name, wrong)
		}
	}
}
