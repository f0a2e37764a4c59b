package logs

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/crc64"
	"strings"

	"kurabe/internal/logread"
)

// listToken is the last of a page of groups or streams, behind which the next one begins.
type listToken struct {
	Time int64  `json:"t,omitempty"`
	Name string `json:"n"`
}

func (t listToken) text() *string { return pack("", t) }

func readListToken(text *string) (t listToken, err error) {
	if text == nil {
		return t, nil
	}
	if err := unpack(*text, &t); err != nil || t.Name == "" {
		return t, invalid("The specified nextToken is invalid.")
	}
	return t, nil
}

// eventToken is a place in the events that some parameters ask for, which Of stands for. It
// stays valid, whatever is added.
type eventToken struct {
	Of uint64 `json:"o"`
	logread.Place
}

// The two tokens of GetLogEvents begin with the direction in which they lead.
const forward, backward = "f/", "b/"

var crc = crc64.MakeTable(crc64.ECMA)

// of stands for the parameters of a reading.
func of(parameters ...string) uint64 {
	return crc64.Checksum([]byte(strings.Join(parameters, "\x00")), crc)
}

func (t eventToken) text(direction string) *string { return pack(direction, t) }

// readEventToken reads a token of a reading of the same parameters.
func readEventToken(text, direction string, of uint64) (*logread.Place, error) {
	rest, ok := strings.CutPrefix(text, direction)
	var t eventToken
	if err := unpack(rest, &t); !ok || err != nil || t.Of != of {
		return nil, invalid("The specified nextToken is invalid.")
	}
	return &t.Place, nil
}

func pack(direction string, token any) *string {
	raw, _ := json.Marshal(token) // texts and numbers
	text := direction + base64.RawURLEncoding.EncodeToString(raw)
	return &text
}

func unpack(text string, token any) error {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, token)
}

// sequenceToken is answered for clients that expect one; nobody has to send it.
func sequenceToken(at int64) *string {
	text := fmt.Sprintf("%056d", at)
	return &text
}

// eventID is an event's among all, in AWS's form of 56 digits.
func eventID(group string, at logread.Place) *string {
	text := fmt.Sprintf("%020d%020d%016d", max(at.Time, 0), of(group, at.Stream, string(at.Host)), at.Number)
	return &text
}
