// Command masquego is a client and a proxy of CONNECT-UDP (RFC 9298) on masque-go.
//
//	masquego client PORT CERTIFICATE TARGET_PORT
//	masquego proxy CERTIFICATE KEY
//
// The client asks for a target that is not allowed, and for an echo server, and prints what comes back. The proxy
// prints its address, and serves until its input ends. Files are DER.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/quic-go/masque-go"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/yosida95/uritemplate/v3"
)

const path = "/.well-known/masque/udp/{target_host}/{target_port}/"

func main() {
	log.SetFlags(0)
	switch os.Args[1] {
	case "client":
		client(os.Args[2], os.Args[3], os.Args[4])
	case "proxy":
		proxy(os.Args[2], os.Args[3])
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func read(name string) []byte {
	content, err := os.ReadFile(name)
	check(err)
	return content
}

func parsed(der []byte) *x509.Certificate {
	certificate, err := x509.ParseCertificate(der)
	check(err)
	return certificate
}

func client(port, certificate, target string) {
	roots := x509.NewCertPool()
	roots.AddCert(parsed(read(certificate)))
	client := masque.Client{TLSClientConfig: &tls.Config{RootCAs: roots, NextProtos: []string{http3.NextProtoH3}}}
	defer client.Close()
	template := uritemplate.MustNew("https://localhost:" + port + path)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, response, err := client.DialAddr(ctx, template, "192.0.2.1:"+target)
	if response == nil {
		log.Fatal(err)
	}
	fmt.Println("status", response.StatusCode, response.Header.Get("Proxy-Status"))
	conn, response, err := client.DialAddr(ctx, template, "127.0.0.1:"+target)
	check(err)
	fmt.Println("status", response.StatusCode, response.Header.Get("Capsule-Protocol"))
	buffer := make([]byte, 2000)
	for _, size := range []int{1, 1000, 1200} {
		_, err := conn.WriteTo(make([]byte, size), nil)
		check(err)
		check(conn.SetReadDeadline(time.Now().Add(20 * time.Second)))
		read, _, err := conn.ReadFrom(buffer)
		check(err)
		fmt.Println("payload", read)
	}
	check(conn.Close())
}

func proxy(certificate, key string) {
	private, err := x509.ParsePKCS8PrivateKey(read(key))
	check(err)
	pair := tls.Certificate{Certificate: [][]byte{read(certificate)}, PrivateKey: private}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check(err)
	template := uritemplate.MustNew(fmt.Sprintf("https://localhost:%d%s", socket.LocalAddr().(*net.UDPAddr).Port, path))
	var proxy masque.Proxy
	handler := http.NewServeMux()
	handler.HandleFunc("/.well-known/masque/udp/", func(w http.ResponseWriter, r *http.Request) {
		request, err := masque.ParseRequest(r, template)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if host, _, _ := net.SplitHostPort(request.Target); host == "192.0.2.1" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		proxy.Proxy(w, request)
	})
	server := &http3.Server{
		TLSConfig:       http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}}),
		QUICConfig:      &quic.Config{EnableDatagrams: true, InitialPacketSize: 1350},
		EnableDatagrams: true,
		Handler:         handler,
	}
	go func() { log.Fatal(server.Serve(socket)) }()
	fmt.Println(socket.LocalAddr())
	io.Copy(io.Discard, os.Stdin)
	server.Close()
}
