package guard

import (
	"testing"

	"kurabe/internal/engine/enginetest"
)

func TestTriggerFile(t *testing.T) {
	enginetest.Golden(t, "global_priv.TRG", triggerFile("global_priv"))
}
