"""Results in the forms that others read: Every Eval Ever, evaluation results of the hub, report cards."""
