//go:build tools

// Package tools names the command to build, so that `go mod tidy` keeps its modules.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
