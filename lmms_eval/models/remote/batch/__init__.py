"""Requests in batches, which services answer within a day at half the price: one mechanism for all services."""
