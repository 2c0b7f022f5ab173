//! Data and pictures: the packages that people work with, over our own client and over the
//! official inspector.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::clients::Inspector;
use crate::support::{Client, keep_settings, png_size, world};

const SALES: &str = "city,item,price\nOslo,tea,3\nOslo,coffee,5\nRome,coffee,4\nRome,tea,2\n";

/// A client of a codexec whose Python is the world's virtual environment.
struct DataClient {
    client: Client,
    /// The directory that it was started in, with `sales.csv`.
    project: PathBuf,
}

fn settings() -> Option<String> {
    let venv = world()?.join("venv");
    Some(format!("[python]\nvenv = {venv:?}\n"))
}

impl DataClient {
    fn find() -> Option<DataClient> {
        let settings = settings()?;
        let mut project = PathBuf::new();
        let client = Client::with(&json!({}), |command| {
            let home = command.get_current_dir().expect("set").to_owned();
            keep_settings(&home, &settings);
            project = home.join("project");
            std::fs::create_dir(&project).expect("made");
            std::fs::write(project.join("sales.csv"), SALES).expect("written");
            command.current_dir(&project);
        });
        Some(DataClient { client, project })
    }

    /// All blocks of the reply, pictures as their type and size.
    fn run(&mut self, code: &str, more: &Value) -> Value {
        let mut arguments = json!({"language": "python", "code": code});
        for (name, value) in more.as_object().into_iter().flatten() {
            arguments[name] = value.clone();
        }
        let call = json!({"name": "execute_code", "arguments": arguments});
        let reply = self.client.request("tools/call", &call);
        assert_ne!(reply["result"]["isError"], true, "{reply}");
        blocks(&reply["result"]["content"])
    }
}

fn blocks(content: &Value) -> Value {
    let blocks = content.as_array().expect("content").iter();
    let blocks = blocks.filter(|block| block["type"] != "resource_link");
    let shown = blocks.map(|block| match block["type"].as_str() {
        Some("text") => block["text"].clone(),
        Some("image") => {
            let (width, height) = png_size(block["data"].as_str().expect("base64"));
            json!([block["mimeType"], width, height])
        }
        _ => panic!("{block}"),
    });
    Value::Array(shown.collect())
}

const PLOT: &str = "import matplotlib.pyplot as plt
plt.figure(figsize=(4, 3), dpi=100)
plt.plot([1, 4, 9])";

#[test]
fn a_table_of_a_working_dir_is_grouped() {
    let Some(mut desk) = DataClient::find() else { return };
    let code = "import pandas as pd
sales = pd.read_csv('sales.csv')
sales.groupby('city')['price'].sum().to_dict()";
    let here = json!({"working_dir": desk.project});
    assert_eq!(desk.run(code, &here), json!(["{\"Oslo\":8,\"Rome\":6}"]));
}

#[test]
fn a_table_is_shown_compactly() {
    let Some(mut desk) = DataClient::find() else { return };
    let code = "import pandas as pd
pd.DataFrame({'number': range(1000), 'square': [n * n for n in range(1000)]})";
    let shown = desk.run(code, &json!({}));
    let text = shown[0].as_str().expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        (lines.first(), lines.last(), lines.len()),
        (Some(&"     number  square"), Some(&"[1000 rows x 2 columns]"), 24),
        "{text}"
    );
    let printed =
        desk.run(&format!("{code}\nprint(_)").replace("pd.Data", "_ = pd.Data"), &json!({}));
    assert_eq!(printed, shown);
}

#[test]
fn a_plot_arrives_as_an_image_however_it_is_shown() {
    let Some(mut desk) = DataClient::find() else { return };
    let plot = json!(["image/png", 400, 300]);
    for (end, text) in [
        ("\nplt.show()", "[1 image]"),
        ("\nNone", "[1 image]"),
        ("\nplt.gcf()", "[figure 400x300]"),
        ("\nprint('drawn')", "drawn"),
        (
            "\nplt.savefig('plot.png')\nemit('plot.png')\nplt.close()\nimport os; os.remove('plot.png')",
            "[1 image]",
        ),
    ] {
        let code = format!("{PLOT}{end}");
        assert_eq!(desk.run(&code, &json!({})), json!([text, plot]), "{code}");
    }
}

#[test]
fn an_image_of_pillow_arrives_in_its_size() {
    let Some(mut desk) = DataClient::find() else { return };
    let code = "from PIL import Image\nImage.new('RGB', (64, 32), 'navy')";
    assert_eq!(desk.run(code, &json!({})), json!(["[image 64x32]", ["image/png", 64, 32]]));
    // A mode that PNG does not have.
    let code = "from PIL import Image\nImage.new('CMYK', (3, 5))";
    assert_eq!(desk.run(code, &json!({})), json!(["[image 3x5]", ["image/png", 3, 5]]));
}

#[test]
fn numbers_of_numpy_are_numbers() {
    let Some(mut desk) = DataClient::find() else { return };
    let code = "import numpy as np
{'sum': np.arange(5).sum(), 'mean': np.float64(0.5), 'list': np.array([1, 2]), 'is': np.True_}";
    assert_eq!(
        desk.run(code, &json!({})),
        json!(["{\"sum\":10,\"mean\":0.5,\"list\":[1,2],\"is\":true}"])
    );
}

fn check_inspector(era: &'static str) {
    let Some(settings) = settings() else { return };
    let Some(inspector) = Inspector::with_settings(era, &settings) else { return };
    let (code, said) = inspector.call(&json!({"language": "python", "code": PLOT}));
    assert_eq!((code, &said[1]), (Some(0), &json!(false)), "{said}");
    let shown = blocks(&said[0]);
    let image = json!(["image/png", 400, 300]);
    assert_eq!(shown.as_array().and_then(|shown| shown.last()), Some(&image), "{shown}");
}

#[test]
fn the_inspector_sees_a_plot_with_a_handshake() {
    check_inspector("legacy");
}

#[test]
fn the_inspector_sees_a_plot_without_a_handshake() {
    check_inspector("modern");
}
