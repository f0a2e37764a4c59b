package parameter

import (
	"testing"

	"kurabe/internal/engine/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }
