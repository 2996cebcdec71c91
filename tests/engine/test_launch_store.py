from __future__ import annotations

import socket
import threading

import pytest

from lmms_eval.engine.team import HOST, HostedStore, Place, StoreClient, StoreServer, Team, TeamError
from lmms_eval.utils.launch import STORE_PORT


def test_the_operations_of_a_store() -> None:
    with StoreServer() as server:
        one, two = (StoreClient(server.environment) for _ in range(2))
        data = bytes(range(256)) * 5000
        one.set("key/ä\n", data)
        assert two.get("key/ä\n") == data
        assert two.check(["key/ä\n"]) and not two.check(["key/ä\n", "other"])
        assert [one.add("n", 2), two.add("n", 0), two.add("n", -3)] == [2, 2, -1]
        assert two.delete_key("key/ä\n") and not one.delete_key("key/ä\n")
        with pytest.raises(KeyError, match="key/ä"):
            one.get("key/ä\n")


def test_numbers_of_many_threads_and_processes_add_up() -> None:
    with StoreServer() as server:
        clients = [StoreClient(server.environment) for _ in range(3)]
        seen: list[int] = []

        def count(client: StoreClient) -> None:
            seen.extend(client.add("n", 1) for _ in range(100))

        threads = [threading.Thread(target=count, args=(client,)) for client in clients * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(seen) == list(range(1, 601))


def test_a_stranger_is_refused_and_the_others_are_served() -> None:
    with StoreServer() as server:
        wrong = {**server.environment, "LMMS_EVAL_STORE_TOKEN": "guess"}
        with pytest.raises(ConnectionError, match="refused"):
            StoreClient(wrong)
        assert StoreClient(server.environment).add("n", 1) == 1


def test_a_stranger_that_says_nothing_holds_up_nobody() -> None:
    with StoreServer() as server, socket.create_connection((HOST, int(server.environment[STORE_PORT]))):
        found: list[int] = []
        client = threading.Thread(target=lambda: found.append(StoreClient(server.environment).add("n", 1)), daemon=True)
        client.start()
        client.join(timeout=10)
        assert found == [1]


def test_the_end_of_the_server_is_an_error_of_the_team() -> None:
    with StoreServer() as server:
        client = StoreClient(server.environment)
        team = Team(Place(1, 2, 1), HostedStore(client))
        team.publish("x", {"y": 1})
        assert team.receive("x", 1) == {"y": 1}
    with pytest.raises(TeamError, match="hosts the launch's store"):
        team.publish("x", 2)
