package appends

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/anishathalye/porcupine"
)

// Op is one transaction on a key: an append of a value that nobody else appends, or, with 0, a
// read.
type Op struct{ Key, Value int }

// Never is the return of one whose outcome is unknown: it may still happen at any time.
const Never = math.MaxInt64

// Model is a list for each key: an append adds to its end, a read is of the whole.
var Model = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		keys := map[int][]porcupine.Operation{}
		for _, o := range history {
			k := o.Input.(Op).Key
			keys[k] = append(keys[k], o)
		}
		var parts [][]porcupine.Operation
		for _, part := range keys {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		if in := input.(Op); in.Value != 0 {
			return true, fmt.Sprintf("%s,%d", state, in.Value)
		}
		return output == state, state
	},
	DescribeOperation: func(input, output any) string {
		in := input.(Op)
		if in.Value != 0 {
			return fmt.Sprintf("append %d to %d", in.Value, in.Key)
		}
		return fmt.Sprintf("read %d: %v", in.Key, output)
	},
}

// Check demands an order of all transactions in which each happens between its call and its
// return, and every read sees exactly what was appended before it. It says what is wrong, and
// in told what came of the search for an order, which takes no longer than limit.
func Check(ops []porcupine.Operation, limit time.Duration) (wrong []string, told string) {
	unknown := 0
	for _, o := range ops {
		if o.Return == Never {
			unknown++
		}
	}
	wrong = Explain(ops)
	result, info := porcupine.CheckOperationsVerbose(Model, ops, limit)
	told = fmt.Sprintf("%d transactions, %d of them with an unknown outcome: %s", len(ops), unknown, result)
	switch result {
	case porcupine.Ok:
	case porcupine.Unknown:
		told += fmt.Sprintf("; no order was found in %v, and there is one, or Explain would have said why not", limit)
	default:
		path := filepath.Join(os.TempDir(), fmt.Sprintf("kurabe-history-%d.html", time.Now().UnixNano()))
		if err := porcupine.VisualizePath(Model, info, path); err != nil {
			path = err.Error()
		}
		wrong = append(wrong, "there is no order of these transactions that explains what the clients saw: "+path)
	}
	return wrong, told
}
