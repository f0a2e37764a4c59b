// Command provider is Terraform's AWS provider in the newest version that the Go module proxy
// has, with a Terraform SDK that speaks plugin protocol 5, as current cores ask for.
package main

import (
	"github.com/hashicorp/terraform/plugin"
	"github.com/terraform-providers/terraform-provider-aws/aws"
)

func main() {
	plugin.Serve(&plugin.ServeOpts{ProviderFunc: aws.Provider})
}
