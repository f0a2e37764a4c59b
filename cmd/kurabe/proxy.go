package main

import (
	"github.com/spf13/cobra"

	"kurabe/internal/proxy/process"
)

func proxyCommand() *cobra.Command {
	c := &cobra.Command{Use: "proxy", Short: "Show what a proxy does", Args: cobra.NoArgs}
	c.AddCommand(proxyRunCommand())
	return c
}

// proxyRunCommand is what the agent starts for each proxy.
func proxyRunCommand() *cobra.Command {
	var folder string
	c := &cobra.Command{
		Use: "run", Short: "Be the process of a proxy", Args: cobra.NoArgs, Hidden: true,
		RunE: func(*cobra.Command, []string) error { return process.Run(folder) },
	}
	c.Flags().StringVar(&folder, "folder", "", "folder of the proxy")
	_ = c.MarkFlagRequired("folder")
	return c
}
