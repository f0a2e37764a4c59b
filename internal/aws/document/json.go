package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"unicode/utf8"

	"kurabe/internal/aws/shape"
)

// DecodeJSON fills in, a pointer to an input struct, from a body. No body is an input without
// members. Its errors are *fault.Fault.
func DecodeJSON(m *shape.Model, body []byte, in any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	if !utf8.Valid(body) {
		return unreadable("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	r := jsonReader{d: d, left: maxValues}
	tree, err := r.value(maxDepth)
	if err == nil && !errors.Is(skip(d.Token()), io.EOF) {
		err = errors.New("more than one value")
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return unreadable("%.200s", err.Error())
	}
	return filler{m, true}.structure(tree, reflect.ValueOf(in).Elem(), "")
}

func skip(_ json.Token, err error) error { return err }

// jsonReader reads one tree.
type jsonReader struct {
	d    *json.Decoder
	left int // values that may still come
}

func (r *jsonReader) value(depth int) (any, error) {
	if r.left--; r.left < 0 || depth < 0 {
		return nil, errors.New("too many or too deeply nested values")
	}
	token, err := r.d.Token()
	switch {
	case err != nil:
		return nil, err
	case token == json.Delim('{'):
		return r.members(depth)
	case token != json.Delim('['):
		return token, nil
	}
	list := []any{}
	for r.d.More() {
		x, err := r.value(depth - 1)
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return list, skip(r.d.Token())
}

func (r *jsonReader) members(depth int) (any, error) {
	tree := map[string]any{}
	for r.d.More() {
		token, err := r.d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		if _, twice := tree[name]; twice {
			return nil, errors.New("duplicate name " + name)
		}
		if tree[name], err = r.value(depth - 1); err != nil {
			return nil, err
		}
	}
	return tree, skip(r.d.Token())
}
