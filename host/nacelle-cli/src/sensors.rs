// SPDX-License-Identifier: Apache-2.0
//! `nacelle sensors`: what the board of a device measures of itself.

use nacelle_manage::Registers;
use nacelle_manage::sensors::{Sensor, SensorKind, SensorValue, Sensors};
use serde::Serialize;

use crate::args::{Cli, RegistersArgs};
use crate::config::over_network;
use crate::failure::Failure;
use crate::manage::control;
use crate::output::{print, print_json, table};
use crate::remote::{RemoteRegisters, Token};

/// A sensor, as JSON.
#[derive(Serialize)]
struct Row {
    name: String,
    kind: SensorKind,
    unit: &'static str,
    /// Without, what follows says nothing either.
    value: Option<f64>,
    simulated: Option<bool>,
    age_seconds: Option<f64>,
}

pub(crate) fn sensors(cli: &Cli, args: &RegistersArgs) -> Result<(), Failure> {
    let RegistersArgs { device, token_file, timeout } = args;
    match over_network(cli, device)? {
        Some(address) => {
            let token = Token::find(token_file.as_deref())?;
            show(cli, &mut RemoteRegisters::connect(address, *timeout, token.as_ref())?)
        }
        None => show(cli, &mut control(cli, device)?),
    }
}

fn show<R: Registers>(cli: &Cli, registers: &mut R) -> Result<(), Failure>
where
    Failure: From<R::Error>,
{
    let Some(sensors) = Sensors::find(registers)? else {
        let hint = "they are part of a device of the RTL whose description names some, in [[sensors]]";
        return Err(Failure::refused("the device has no sensors", hint));
    };
    let rows: Vec<Row> = sensors.read(registers)?.into_iter().map(row).collect();
    if cli.json {
        return print_json(&rows);
    }
    print(&table(&lines(&rows), 2))
}

fn row(Sensor { name, kind, value }: Sensor) -> Row {
    Row {
        name,
        kind,
        unit: kind.unit(),
        value: value.as_ref().map(SensorValue::value),
        simulated: value.map(|value| value.simulated),
        age_seconds: value.map(|value| value.age.as_secs_f64()),
    }
}

fn lines(rows: &[Row]) -> Vec<Vec<String>> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    let mut lines = vec![["NAME", "KIND", "VALUE", "AGE", "SOURCE"].map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(|row| {
        let source = row.simulated.map(|simulated| if simulated { "simulated" } else { "measured" }.to_owned());
        vec![
            row.name.clone(),
            row.kind.to_string(),
            or_dash(row.value.map(|value| format!("{value:.3} {}", row.unit))),
            or_dash(row.age_seconds.map(|seconds| format!("{seconds:.1} s"))),
            or_dash(source),
        ]
    }));
    lines
}
