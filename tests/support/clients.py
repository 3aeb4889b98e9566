# SPDX-License-Identifier: Apache-2.0
"""An ordinary application's AMQP client: pika, with deadlines."""
import pika

SECONDS = 30


def parameters(port, context=None, user="guest", password="guest", vhost="/", heartbeat=None,
               name=None):
    """For PORT on loopback; with TLS and a verified peer if CONTEXT is given. NAME is the
    connection's name in the broker's log."""
    return pika.ConnectionParameters(
        "localhost" if context else "127.0.0.1", port, vhost,
        pika.PlainCredentials(user, password),
        ssl_options=pika.SSLOptions(context, "localhost") if context else None,
        heartbeat=heartbeat, client_properties={"connection_name": name} if name else None,
        socket_timeout=SECONDS, stack_timeout=SECONDS, blocked_connection_timeout=SECONDS)


def connect(port, context=None, **login):
    return pika.BlockingConnection(parameters(port, context, **login))


def private_queue(channel):
    """A new queue that ends with its connection; returns its name."""
    return channel.queue_declare("", exclusive=True).method.queue


def round_trip(connection, body):
    """Publishes BODY with a confirm and gets it back from the broker."""
    channel = connection.channel()
    channel.confirm_delivery()
    queue = private_queue(channel)
    channel.basic_publish("", queue, body)
    _, _, received = channel.basic_get(queue, auto_ack=True)
    channel.close()
    return received
