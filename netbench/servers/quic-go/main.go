// Command quic-go is a server of HTTP/3 on quic-go for netbench.
//
//	quic-go ADDRESS FOLDER
//
// The folder has cert.pem, key.pem, and in www the responses by their paths.
package main

import (
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

func main() {
	address, folder := os.Args[1], os.Args[2]
	files, err := filepath.Glob(filepath.Join(folder, "www", "*"))
	if err != nil {
		log.Fatal(err)
	}
	bodies := make(map[string][]byte)
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			log.Fatal(err)
		}
		bodies["/"+filepath.Base(file)] = body
	}
	server := &http3.Server{
		Addr:       address,
		QUICConfig: &quic.Config{MaxIncomingStreams: 1000},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, known := bodies[r.URL.Path]
			if !known {
				http.NotFound(w, r)
				return
			}
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			w.Write(body)
		}),
	}
	log.Fatal(server.ListenAndServeTLS(filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")))
}
