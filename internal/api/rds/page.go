package rds

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/control"
)

// RDS's bounds of MaxRecords.
const (
	minPage = 20
	maxPage = 100
)

// pageSize checks MaxRecords.
func pageSize(max *int32) (int, error) {
	switch {
	case max == nil:
		return maxPage, nil
	case *max < minPage || *max > maxPage:
		return 0, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid value %d for MaxRecords. Must be between %d and %d", *max, minPage, maxPage)
	}
	return int(*max), nil
}

// markerMagic begins the text of a marker, so that one of another service or of a
// hand is told from ours.
const markerMagic = "kurabe1:"

// page cuts the page that Marker and MaxRecords ask for out of a list, which is
// sorted by name. Markers are opaque to users: the name of the last item, packed.
func page[T any](list []T, name func(T) string, marker *string, max *int32) ([]T, *string, error) {
	size, err := pageSize(max)
	if err != nil {
		return nil, nil, err
	}
	after, err := unpackMarker(marker)
	if err != nil {
		return nil, nil, err
	}
	list, next := control.MarkerPage(list, name, after, size)
	return list, packMarker(next), nil
}

// oneOrAll is the list of a Describe: what is named, or everything without a name.
func oneOrAll[T any](name *string, one func(name string) (T, error), all func() []T) ([]T, error) {
	if str(name) == "" {
		return all(), nil
	}
	found, err := one(str(name))
	if err != nil {
		return nil, err
	}
	return []T{found}, nil
}

// unpackMarker returns the name that a page starts after, "" without a marker.
func unpackMarker(marker *string) (after string, err error) {
	if str(marker) == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(*marker)
	after, ok := strings.CutPrefix(string(raw), markerMagic)
	if err != nil || !ok || after == "" {
		return "", kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid value for Marker: %.100q is no marker that a reply has held", *marker)
	}
	return after, nil
}

// packMarker makes the marker of the page after name, nil at the end.
func packMarker(name string) *string {
	if name == "" {
		return nil
	}
	marker := base64.RawURLEncoding.EncodeToString([]byte(markerMagic + name))
	return &marker
}

// filterValues reads Filters. A name that the action does not know is refused, and
// so is a filter without values, as on RDS: it would match nothing or everything.
func filterValues(filters []types.Filter, known ...string) (map[string][]string, error) {
	values := map[string][]string{}
	for _, f := range filters {
		if !slices.Contains(known, str(f.Name)) {
			return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Unrecognized filter name: %s", str(f.Name))
		}
		if len(f.Values) == 0 {
			return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "The list of values of the filter %s must not be empty.", str(f.Name))
		}
		values[*f.Name] = append(values[*f.Name], f.Values...)
	}
	return values, nil
}

// mapped translates every item of a list; the outcome is never nil.
func mapped[From, To any](list []From, translate func(From) To) []To {
	out := make([]To, 0, len(list))
	for _, item := range list {
		out = append(out, translate(item))
	}
	return out
}

// pageAt is page for a list that is sorted by something else than text: its
// marker is a place in the list, which changes only with what is installed.
func pageAt[T any](list []T, marker *string, max *int32) ([]T, *string, error) {
	places := make([]int, len(list))
	for n := range places {
		places[n] = n
	}
	places, next, err := page(places, func(n int) string { return fmt.Sprintf("%06d", n) }, marker, max)
	if err != nil || len(places) == 0 {
		return nil, next, err
	}
	return list[places[0] : places[len(places)-1]+1], next, nil
}
