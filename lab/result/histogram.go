package result

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Every histogram of a file has this one shape, so that any two can be merged.
const (
	histogramLowest  = 1               // µs
	histogramHighest = 10 * 60 * 1e6   // µs
	histogramFigures = 3               // so a value is true to 0.1 %
	geometryOffset   = 12              // of figures, lowest, highest and ratio in the header of the codec
	prefixBytes      = 8               // cookie and length, before the compressed part
	maxEncodedBytes  = (320 << 10) - 1 // 21,504 counters of at most 9 bytes, times 4/3 for base64, is 258,048
)

// NewHistogram returns an empty histogram of microseconds, 1 µs to 10 min with three
// significant figures. What lasts longer is the caller's to record as the most.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(histogramLowest, histogramHighest, histogramFigures)
}

// MaxHistogramMicros is the largest value that a histogram takes, 10 min.
const MaxHistogramMicros int64 = histogramHighest

// geometry is what the header of every histogram of ours says of its shape.
var geometry = func() []byte {
	b := binary.BigEndian.AppendUint32(nil, histogramFigures)
	b = binary.BigEndian.AppendUint64(b, histogramLowest)
	b = binary.BigEndian.AppendUint64(b, histogramHighest)
	return binary.BigEndian.AppendUint64(b, math.Float64bits(1))
}()

// EncodeHistogram gives the text of a histogram: the V2 compressed codec of
// HdrHistogram in base64, which every HdrHistogram library reads. It keeps each
// counter exactly.
func EncodeHistogram(h *hdrhistogram.Histogram) (string, error) {
	if h == nil {
		return "", errors.New("encode histogram: there is none")
	}
	if h.LowestTrackableValue() != histogramLowest || h.HighestTrackableValue() != histogramHighest || h.SignificantFigures() != histogramFigures {
		return "", fmt.Errorf("encode histogram: it spans %d to %d with %d figures; use NewHistogram", h.LowestTrackableValue(), h.HighestTrackableValue(), h.SignificantFigures())
	}
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("encode histogram: %w", err)
	}
	return string(text), nil
}

// DecodeHistogram reads what EncodeHistogram wrote. Another shape is refused before
// anything of its size is allocated.
func DecodeHistogram(text string) (*hdrhistogram.Histogram, error) {
	if len(text) > maxEncodedBytes {
		return nil, fmt.Errorf("decode histogram: %d bytes are more than the %d that one can have", len(text), maxEncodedBytes)
	}
	if err := checkGeometry(text); err != nil {
		return nil, fmt.Errorf("decode histogram: %w", err)
	}
	h, err := hdrhistogram.Decode([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("decode histogram: %w", err)
	}
	return h, nil
}

func checkGeometry(text string) error {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	if len(raw) < prefixBytes {
		return errors.New("it is too short")
	}
	z, err := zlib.NewReader(bytes.NewReader(raw[prefixBytes:]))
	if err != nil {
		return err
	}
	defer z.Close() // reading from memory
	header := make([]byte, hdrhistogram.ENCODING_HEADER_SIZE)
	if _, err := io.ReadFull(z, header); err != nil {
		return fmt.Errorf("read its header: %w", err)
	}
	if !bytes.Equal(header[geometryOffset:], geometry) {
		return errors.New("its range or precision is not that of this file's format")
	}
	return nil
}

// Merge adds histograms up; those given stay as they are.
func Merge(histograms ...*hdrhistogram.Histogram) (*hdrhistogram.Histogram, error) {
	sum := NewHistogram()
	for _, h := range histograms {
		if dropped := sum.Merge(h); dropped > 0 {
			return nil, fmt.Errorf("merge histograms: %d values do not fit", dropped)
		}
	}
	return sum, nil
}
