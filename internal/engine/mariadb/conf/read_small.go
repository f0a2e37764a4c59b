package conf

import (
	"io"

	"kurabe/internal/volume"
)

// ReadSmall reads a file of a folder that the engine's user can write.
func ReadSmall(dir, name string) (string, error) {
	const most = 4096
	root, err := volume.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	file, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most))
	return string(text), err
}
