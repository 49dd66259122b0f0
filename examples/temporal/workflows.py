"""A workflow of Temporal, which knows nothing of OnceKey."""

from datetime import timedelta

from temporalio import workflow


@workflow.defn
class Order:
    @workflow.run
    async def run(self, charge: str) -> str:
        payment = await workflow.execute_activity(
            "payment_of", charge, schedule_to_close_timeout=timedelta(days=3)
        )
        return f"paid: {payment['cents']}"
