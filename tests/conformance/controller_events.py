"""Events of the controllers' log as the cases write them: a name, then values."""

from nodes.controller.tables import events


def event_of(shown):
    kind, *values = shown
    match kind:
        case "APPLY_BROKER_ID":
            return events.ApplyBrokerId(*values)
        case "ELECT_MASTER":
            return events.ElectMaster(*values)
        case "ALTER_SYNC_STATE_SET":
            return events.AlterSyncStateSet(*values)
        case "CLEAN_BROKER_DATA":
            return events.CleanBrokerData(*values)
        case _:
            return events.UpdateBrokerAddress(*values)


def shown_event(event):
    match event:
        case events.ApplyBrokerId():
            owner = [event.broker_address, event.new_broker_id, event.register_check_code]
            return ["APPLY_BROKER_ID", event.cluster_name, event.broker_name, *owner]
        case events.ElectMaster():
            return ["ELECT_MASTER", event.broker_name, event.new_master_elected, event.new_master_broker_id]
        case events.AlterSyncStateSet():
            return ["ALTER_SYNC_STATE_SET", event.broker_name, sorted(event.new_sync_state_set)]
        case events.CleanBrokerData():
            ids = None if event.broker_ids is None else sorted(event.broker_ids)
            return ["CLEAN_BROKER_DATA", event.broker_name, ids]
        case events.UpdateBrokerAddress():
            moved = [event.broker_address, event.broker_id]
            return ["UPDATE_BROKER_ADDRESS", event.cluster_name, event.broker_name, *moved]
