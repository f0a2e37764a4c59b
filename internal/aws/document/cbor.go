package document

import (
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"kurabe/internal/aws/shape"
)

var cborDecoder = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxNestedLevels: maxDepth, MaxArrayElements: maxValues, MaxMapPairs: maxValues,
		DefaultMapType: reflect.TypeFor[map[string]any](), TimeTagToAny: cbor.TimeTagToTime, UTF8: cbor.UTF8RejectInvalid,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// DecodeCBOR fills in, a pointer to an input struct, from a body. No body is an input without
// members. Its errors are *fault.Fault.
func DecodeCBOR(m *shape.Model, body []byte, in any) error {
	var tree any = map[string]any{}
	if len(body) > 0 {
		if err := cborDecoder.Wellformed(body); err != nil {
			return unreadable("%.200s", err.Error())
		}
		if cborItems(body) > maxValues {
			return unreadable("too many values")
		}
		if err := cborDecoder.Unmarshal(body, &tree); err != nil {
			return unreadable("%.200s", err.Error())
		}
	}
	return filler{m, false}.structure(tree, reflect.ValueOf(in).Elem(), "")
}

// cborItems counts the items of a well-formed body, of which each costs much more memory than
// the byte that it may be.
func cborItems(body []byte) int {
	items := 0
	for len(body) > 0 {
		items++
		major, length := body[0]>>5, uint64(body[0]&0x1f)
		body = body[1:]
		const oneByte, eightBytes = 24, 27
		if length >= oneByte && length <= eightBytes {
			size := 1 << (length - oneByte)
			length = 0
			for _, b := range body[:size] {
				length = length<<8 | uint64(b)
			}
			body = body[size:]
		} else if length > eightBytes { // of indefinite length, or its end
			continue
		}
		const blob, text = 2, 3
		if major == blob || major == text {
			body = body[length:]
		}
	}
	return items
}
