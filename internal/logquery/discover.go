package logquery

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// discoveredMax bounds the fields that Discover finds (CloudWatch's).
const discoveredMax = 200

// Discover returns the JSON fields of a message, as queries name them.
func Discover(message []byte) map[string]string {
	fields := map[string]string{}
	at := jsonStart(message)
	if at < 0 {
		return fields
	}
	d := json.NewDecoder(bytes.NewReader(message[at:]))
	d.UseNumber()
	var tree any
	if d.Decode(&tree) == nil {
		flatten(fields, "", tree)
	}
	return fields
}

func flatten(fields map[string]string, path string, v any) {
	if len(fields) >= discoveredMax {
		return
	}
	under := func(key string) string {
		if path == "" {
			return key
		}
		return path + "." + key
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			flatten(fields, under(key), v[key])
		}
	case []any:
		for n, inner := range v {
			flatten(fields, under(strconv.Itoa(n)), inner)
		}
	case string:
		fields[path] = v
	case json.Number:
		fields[path] = v.String()
	case bool:
		fields[path] = string(truthValue(v).appendText(nil))
	}
}
