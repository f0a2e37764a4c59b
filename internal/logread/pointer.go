package logread

import (
	"encoding/base64"
	"encoding/json"
	"errors"
)

// pointer is what leads to one event.
type pointer struct {
	Group string `json:"g"`
	Place
}

// Pointer is a text that leads to an event (@ptr).
func Pointer(group string, at Place) string {
	raw, _ := json.Marshal(pointer{group, at}) // texts and numbers
	return base64.RawURLEncoding.EncodeToString(raw)
}

// ReadPointer reads what Pointer has written.
func ReadPointer(text string) (group string, at Place, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return "", at, err
	}
	var p pointer
	if err := json.Unmarshal(raw, &p); err != nil {
		return "", at, err
	}
	if p.Group == "" || p.Stream == "" || p.Host == "" || p.Number < 1 {
		return "", at, errors.New("a part of the pointer is missing")
	}
	return p.Group, p.Place, nil
}
